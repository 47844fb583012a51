"""Bring the report's libraries up to date: npm fetches them and their licences; outlines of a head are nilearn's.

    python tools/vendor.py                  # needs npm, and nilearn in this environment

writes src/silograph/report/assets/vendor/. Versions are named here; what was fetched is kept in the repository, so that
neither an installation nor a page ever fetches anything.
"""

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "src" / "silograph" / "report" / "assets" / "vendor"
PACKAGES = {  # name and version: the file that is kept, and what it is called here
    "cytoscape@3.34.4": ("dist/cytoscape.min.js", "cytoscape"),
    "plotly.js-cartesian-dist-min@4.1.1": ("plotly-cartesian.min.js", "plotly"),
}
# nilearn.plotting.glass_brain: the drawing of each view, and the affine map that fits it to the MNI template
DRAWINGS = {
    "Sagittal": ("side", (0.38, 0.38, -108, -70)),
    "Axial": ("top", (0.36, 0.37, -71, -107)),
    "Coronal": ("back", (0.39, 0.39, -73, -73)),
}


def main() -> None:
    """Fetch, check and write everything."""
    VENDOR.mkdir(parents=True, exist_ok=True)
    lines = ["# What is here, and where it is from\n"]
    with tempfile.TemporaryDirectory() as scratch:
        for package, (file, name) in PACKAGES.items():
            kept = fetch(package, file, name, Path(scratch))
            digest = hashlib.sha256(kept.read_bytes()).hexdigest()
            lines.append(f"- `{kept.name}`: npm package {package}, `{name}.LICENSE` (MIT), SHA-256 {digest}")
    lines.append("- `brain_outlines.json`: nilearn's glass brain, `nilearn.LICENSE` (BSD 3-Clause)")
    lines.append("\nMade by `make vendor` (tools/vendor.py); not to be edited by hand.\n")
    (VENDOR / "README.md").write_text("\n".join(lines), encoding="utf-8")
    write_outlines()


def fetch(package: str, file: str, name: str, scratch: Path) -> Path:
    """One file of an npm package and its licence."""
    told = subprocess.run(
        ["npm", "pack", "--silent", package], cwd=scratch, check=True, capture_output=True, text=True
    ).stdout
    with tarfile.open(scratch / told.split()[-1]) as archive:
        archive.extractall(scratch / name, filter="data")
    inside = scratch / name / "package"
    script = (inside / file).read_text(encoding="utf-8")
    if "</script" in script.lower() or "<!--" in script:
        raise SystemExit(f"{package}: its script would end the element that holds it.")
    kept = VENDOR / Path(file).name
    kept.write_text(script, encoding="utf-8")
    shutil.copyfile(inside / "LICENSE", VENDOR / f"{name}.LICENSE")
    return kept


def write_outlines() -> None:
    """Drawings of a head by nilearn, as SVG paths in MNI millimetres."""
    import nilearn

    home = Path(nilearn.__file__).parent
    views = {}
    for view, (drawing, (across, up, left, low)) in DRAWINGS.items():
        text = (home / "plotting" / "glass_brain_files" / f"brain_schematics_{drawing}.json").read_text()
        items = [item["pts"] for path in json.loads(text)["paths"] for item in path["items"]]
        curves = [[(across * x + left, up * y + low) for x, y in points] for points in items]
        flat = [point for points in curves for point in points]
        xs, ys = zip(*flat, strict=True)
        box = [round(value, 1) for value in (min(xs), min(ys), max(xs), max(ys))]
        views[view] = {"path": svg_path(curves), "box": box}
    (VENDOR / "brain_outlines.json").write_text(
        json.dumps({"source": f"nilearn {nilearn.__version__}, glass brain", "views": views}) + "\n", encoding="utf-8"
    )
    licences = [
        *home.parent.glob("nilearn-*.dist-info/licenses/LICENSE*"),
        *home.parent.glob("nilearn-*.dist-info/LICENSE*"),
    ]
    shutil.copyfile(licences[0], VENDOR / "nilearn.LICENSE")


def svg_path(curves: list[list[tuple[float, float]]]) -> str:
    """Curves and lines, each going on where the last one ended if it does; y downwards, as SVG has it."""
    letters = {2: "L", 3: "Q", 4: "C"}
    parts, end = [], None
    for points in curves:
        written = [f"{x:.1f} {-y:.1f}" for x, y in points]
        if written[0] != end:
            parts.append(f"M{written[0]}")
        parts.append(letters[len(points)] + " ".join(written[1:]))
        end = written[-1]
    return "".join(parts)


if __name__ == "__main__":
    main()
