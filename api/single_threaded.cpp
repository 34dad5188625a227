// yaml-cpp's archive is not compiled for shared libraries and wants this variable of glibc within
// the library. Zero: there may be more threads than one, and shared_ptr counts with atomics.
extern "C" {
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
