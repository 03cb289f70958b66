"""Which room includes what: finds every #include that the table of rooms does not allow.

The table is the pg_room and pg_module lines of the top CMakeLists.txt, so links and includes cannot disagree.

usage: check_rooms.py [root]
"""

import pathlib
import re
import sys

DECLARATION = re.compile(r"^pg_(?:room|module)\(\s*(\w+)([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)")
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>: no folder and no suffix
SUFFIXES = {".h", ".cpp", ".def"}
PUBLIC_MACRO = re.compile(r"PG_API|PANGRAD_VERSION\w*")


def read_rooms(cmake):
    """Each room with all it may include: itself, and what it uses, and what those use."""
    rooms = {}
    for name, arguments in DECLARATION.findall(cmake):
        words = arguments.split()
        uses = words[words.index("USES") + 1 :] if "USES" in words else []
        if "LIBS" in uses:
            uses = uses[: uses.index("LIBS")]
        rooms[name] = {name}
        for used in uses:
            if used not in rooms:
                raise ValueError(f"pg_room({name}) uses {used}, which is not declared above it")
            rooms[name] |= rooms[used]
    return rooms


def files_under(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def wrong_in_room(root, room, allowed, path):
    """The messages about one file of a room."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, name = match.groups()
        where = f"{path.relative_to(root)}:{number}: "
        first = name.split("/")[0]
        if kind == '"':
            if not (root / "src" / name).is_file():
                yield f'{where}"{name}" is no file of src/ (write the path from there; angle brackets for the rest)'
            elif first not in allowed:
                yield f'{where}{room} may not include "{name}"; its rooms are {", ".join(sorted(allowed))}'
        elif first in ("llvm", "llvm-c", "clang") and room != "llvm":
            yield f"{where}<{name}>: only src/llvm may see LLVM"


def wrong_in_public(root, path):
    """The messages about one public header: only the standard library and its siblings, and no macros."""
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path.relative_to(root)}:{number}: "
        include, define = INCLUDE.match(line), DEFINE.match(line)
        if include:
            kind, name = include.groups()
            if kind == '"' or not (name.startswith("pangrad/") or STANDARD.fullmatch(name)):
                yield f"{where}a public header includes only <pangrad/...> and the standard library, not {name}"
        elif define:
            name = define.group(1)
            if not PUBLIC_MACRO.fullmatch(name) and f"#undef {name}" not in text:
                yield f"{where}a public header leaves no macro behind, but defines {name}"


def violations(root):
    """All messages about a source tree."""
    rooms = read_rooms((root / "CMakeLists.txt").read_text())
    found = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if folder.name not in rooms:
            found.append(f"src/{folder.name}: no pg_room declares it")
            continue
        for path in files_under(folder):
            found += wrong_in_room(root, folder.name, rooms[folder.name], path)
    for path in files_under(root / "include" / "pangrad"):
        found += wrong_in_public(root, path)
    return found


if __name__ == "__main__":
    messages = violations(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(messages))
    sys.exit(1 if messages else 0)
