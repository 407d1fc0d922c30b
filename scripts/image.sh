#!/usr/bin/env bash
# Textor's image over a base that needs nothing but Python, with wheels from this machine.
#
#   scripts/image.sh BASE [TAG]     such as: scripts/image.sh textor/base:test textor:test
#
# The wheels are for the Python that runs here (PYTHON), whose version must be that of BASE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${1:?usage: scripts/image.sh BASE [TAG]}
tag=${2:-textor}
python=${PYTHON:-.venv/bin/python}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp -r Dockerfile pyproject.toml README.md src "$context"
find "$context" -name __pycache__ -prune -exec rm -rf {} +
"$python" -m pip wheel --quiet --wheel-dir "$context/wheels" "$context" pip
docker build --quiet --build-arg BASE="$base" --tag "$tag" "$context"
