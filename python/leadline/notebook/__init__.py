# SPDX-License-Identifier: Apache-2.0
"""What notebooks see: the magics of `%load_ext leadline`, the watch of cells, HTML tables."""
