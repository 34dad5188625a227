"""Puts the folders beside this file where Python looks for modules. A program that uses another folder's starts with
`sys.path.insert(0, FOLDER_ABOVE)` and `import folders`; modules are then imported by their own names."""
import pathlib
import sys

sys.path[1:1] = [str(folder) for folder in sorted(pathlib.Path(__file__).resolve().parent.iterdir())
                 if folder.is_dir() and any(folder.glob("*.py"))]
