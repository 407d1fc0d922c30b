"""What commands need before they can begin: the configuration, the folder, the machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor.errors import UseError

if TYPE_CHECKING:
    from textor.config import Config


def configuration(**overrides: Any) -> Config:
    """The configuration under the options that were given (`models__default=…`); its warnings are
    told on stderr."""
    from textor.config import load

    config = load(overrides={key.replace("__", "."): value for key, value in overrides.items()})
    for warning in config.warnings:
        print(f"textor: {warning}", file=sys.stderr)
    return config


def workspace(args: argparse.Namespace) -> Path:
    """The folder to work in. Raises `UseError` when it is none."""
    folder = Path(args.workspace).expanduser() if args.workspace else Path.cwd()
    if not folder.is_dir():
        raise UseError(f"{folder} is no folder.", "--workspace takes the folder to work in.")
    return folder.resolve()
