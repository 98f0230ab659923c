# SPDX-License-Identifier: Apache-2.0
"""What stands between the extension module and the rest: arguments, tensors, sessions, files."""
