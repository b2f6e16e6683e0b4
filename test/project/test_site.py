"""The pages build as a site without a broken link."""

import os
import subprocess
import sys

import pytest
from support.paths import ROOT


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run([sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(tmp_path)], cwd=ROOT,
                          env={**os.environ, 'NO_MKDOCS_2_WARNING': '1'}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'inverse_dynamics' in (tmp_path / 'reference' / 'python' / 'index.html').read_text()
