"""Where the folders of the project are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / 'test'
CONFIG = ROOT / 'config'
URDF = ROOT / 'urdf'
