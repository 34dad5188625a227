#!/usr/bin/env bash
# Makes a tar of the window with the Qt libraries that it needs, for machines without Qt:
#   tools/make_gui_bundle.sh [BUILD] [FOLDER]     default: build/release, built here, and build/dist
# It starts where the C library is as new as this machine's or newer, and X or Wayland is there.
# Prints the path of the tar.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/release}"
to="${2:-build/dist}"

# What every desktop has and must have its own way: the C library, graphics drivers, X, fonts. The
# choice is that of AppImage's list of excluded libraries (github.com/AppImageCommunity/pkg2appimage).
of_the_system='ld-linux|lib(c|m|dl|rt|pthread|resolv|util|GL|EGL|GLX|GLdispatch|OpenGL|drm|gbm|X11|X11-xcb|xcb|fontconfig|freetype|expat|z|com_err)\.so'

[[ $# -gt 0 ]] || cmake --preset release >&2
cmake --build "$build" --parallel "$(nproc)" --target shardplan-gui >&2
program="$build/gui/shardplan-gui"
qt_core="$(ldd "$program" | awk '/libQt6Core/ {print $3}')"
plugins="$(dirname "$qt_core")/qt6/plugins"
if [[ ! -d "$plugins/platforms" ]]; then
  echo "make_gui_bundle: no Qt plugins at $plugins" >&2
  exit 1
fi

version="$("$program" --version | awk '{print $NF}')"
name="shardplan-gui-$version-linux-$(uname -m)"
staged="$(mktemp -d)"
trap 'rm -rf "$staged"' EXIT
bundle="$staged/$name"
mkdir -p "$bundle/"{bin,lib,plugins/platforms} "$to"
strip --strip-unneeded -o "$bundle/bin/shardplan-gui" "$program"
printf '[Paths]\nPrefix = ..\nPlugins = plugins\n' >"$bundle/bin/qt.conf"
for plugin in "$plugins"/platforms/libq{xcb,offscreen,wayland-generic}.so; do
  [[ ! -e "$plugin" ]] || cp "$plugin" "$bundle/plugins/platforms/"
done
for folder in xcbglintegrations wayland-shell-integration; do
  [[ ! -d "$plugins/$folder" ]] || cp -r "$plugins/$folder" "$bundle/plugins/"
done
find "$bundle/bin" "$bundle/plugins" -type f \( -name '*.so' -o -name shardplan-gui \) -exec ldd {} + |
  awk '/=> \// {print $3}' | sort -u | grep -vE "/($of_the_system)" |
  while read -r library; do cp -L "$library" "$bundle/lib/"; done
cat >"$bundle/shardplan-gui" <<'START'
#!/bin/sh
# Starts the window with the libraries beside it.
here="$(dirname "$(readlink -f "$0")")"
LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/bin/shardplan-gui" "$@"
START
chmod +x "$bundle/shardplan-gui"
cp gui/shardplan.desktop gui/shardplan.svg LICENSE "$bundle/"

when="$(git log -1 --format=@%ct 2>/dev/null || echo @0)"
tar --create --sort=name --mtime="$when" --owner=0 --group=0 --numeric-owner \
  --directory "$staged" "$name" | gzip --no-name >"$to/$name.tar.gz.part"
mv "$to/$name.tar.gz.part" "$to/$name.tar.gz"
echo "$to/$name.tar.gz"
