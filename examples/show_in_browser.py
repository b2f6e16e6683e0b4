"""What does a machine look like?  A page in 3-D with sliders, in one file that needs no network."""
from pathlib import Path

import psdyn_ros

excavator = psdyn_ros.load('excavator')
excavator.show(path='excavator.html')           # without a path the browser opens
size = Path('excavator.html').stat().st_size
print(f'excavator.html: {size / 1e6:.2f} MB')
assert 1e5 < size < 3e6
