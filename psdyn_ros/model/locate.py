"""Where the machines and configurations of the package are: installed by ROS, installed by pip, or in the source."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import UnknownNameError, did_you_mean, shorten


def share_folders() -> list[Path]:
    """Return the existing share folders of the package, the one of a sourced ROS workspace first."""
    prefixes = [*filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)), sys.prefix]
    folders = [Path(prefix) / 'share' / 'psdyn_ros' for prefix in prefixes]
    source = Path(__file__).resolve().parents[2]
    # a source tree stands before an older installed copy, and is recognised by its package.xml
    if (source / 'package.xml').is_file():
        folders.insert(0, source)
    return [folder for folder in folders if folder.is_dir()]


def machine_names() -> list[str]:
    """Return the names of the machines that come with the package."""
    return sorted({path.stem for folder in share_folders() for path in (folder / 'urdf').glob('*.urdf')})


def find_machine(name_or_path: str | os.PathLike[str]) -> str:
    """Return the path of a URDF: a file, or the name of a machine of the package."""
    name = str(name_or_path)
    candidates = (name, *(os.path.join(folder, 'urdf', f'{name}.urdf') for folder in share_folders()))
    for path in candidates:
        if os.path.exists(path):
            return path
    raise UnknownNameError(f"'{shorten(name)}': no such file or machine{did_you_mean(name, machine_names())}")


def machine_config(machine: str, what: str) -> str:
    """Return the path of a YAML file of a machine of the package; what: 'hydraulics', 'safety', 'sensors'.

    Raises UnknownNameError.
    """
    found = find_config(f'{machine}_{what}.yaml')
    if found is None:
        files = {path.stem for folder in share_folders() for path in (folder / 'config').glob(f'*_{what}.yaml')}
        machines = sorted(name.removesuffix(f'_{what}') for name in files)
        raise UnknownNameError(f"'{shorten(machine)}' has no {what} in the package{did_you_mean(machine, machines)}")
    return found


def find_config(file_name: str) -> str | None:
    """Return the path of a file of the package's config folder, or None."""
    return next((str(folder / 'config' / file_name) for folder in share_folders()
                 if (folder / 'config' / file_name).is_file()), None)
