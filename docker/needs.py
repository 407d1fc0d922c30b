"""What Textor needs, put into an image while it is built: `python3 needs.py FOLDER EXTRAS MADE`.

In FOLDER lie a pyproject.toml and, where nothing is to be fetched, wheels with that of pip. The
environment is /opt/textor; what of it the image below does not have yet comes into MADE, with the
names that it will have. Only the standard library: nothing else is there yet.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HOME = Path("/opt/textor")
SCRIPT = f"#!{HOME}/bin/python -P\nimport sys\nfrom textor.cli import main\nsys.exit(main())\n"


def main(folder: Path, extras: list[str], made: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project.get("dependencies", []))
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    place = made / HOME.relative_to("/")
    place.parent.mkdir(parents=True)
    fresh = not HOME.exists()
    if fresh:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", HOME], check=True)
        shutil.copytree(HOME, place, symlinks=True)
    if wanted:
        install(folder, wanted, made, place)
    if fresh:
        (packages,) = place.glob("lib/python3*/site-packages")
        (packages / "textor.pth").write_text(f"{HOME}/src\n")
        (place / "bin" / "textor").write_text(SCRIPT)
        (place / "bin" / "textor").chmod(0o755)


def install(folder: Path, wanted: list[str], made: Path, place: Path) -> None:
    """By the pip that lies there and from the wheels beside it, else by that of the image and from
    its index. Wheels alone: making one would run what its author wrote."""
    ours = [*folder.glob("pip-*.whl")]
    pip = [HOME / "bin" / "python", ours[0] / "pip"] if ours else [
        sys.executable, "-m", "pip", "--python", HOME / "bin" / "python"
    ]  # fmt: skip
    source = ["--no-index", "--find-links", folder] if ours else []
    options = ["--quiet", "--no-cache-dir", "--no-compile", "--only-binary", ":all:", "--prefix", place]
    subprocess.run([*pip, "install", *options, *source, *wanted], check=True)
    # by all processors, with the paths that it will have; some packages hold files of other Pythons
    compiled = [sys.executable, "-m", "compileall", "-q", "-j", "0", "-s", made, "-p", "/", place]
    subprocess.run(compiled, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(), Path(sys.argv[3]))
