#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of the watch in a virtual machine with control groups of version 2, swap and pressure (PSI), for machines that
# have version 1: `make survive-v2`. The machine sees the files of this one, read-only; what it writes is in its memory.
# usage: tests/survive/cgroup2_vm.sh [COMMAND ...]     default: the C++ tests of src/guard, then those of watched notebooks
#   VM_ACCELERATOR  kvm or tcg (emulation, slower but everywhere). Default: kvm where /dev/kvm can be used
#   VM_MEMORY, VM_SWAP  in MB (default 3000 and 1000); VM_CPUS (default 2); VM_SECONDS at most (default 3600)
# Needs the Debian packages of `tools/setup.sh vm`. The exit code is that of the command.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/build/cgroup2-vm
mkdir -p "$work"
cd "$work"

if [[ $# -eq 0 ]]; then
  set -- bash tests/survive/cgroup2_tests.sh
fi

# Debian's own kernel, not installed: only its files are needed.
if [[ ! -d kernel/boot ]]; then
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
  apt-get download -q "$package"
  dpkg -x "$package"_*.deb kernel
  rm -f "$package"_*.deb
fi
image=$(echo kernel/boot/vmlinuz-*)

# In the order in which they need each other; a kernel may have some of them built in.
modules=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk
  netfs fscache 9pnet 9pnet_virtio 9p overlay)
rm -rf initramfs
mkdir -p initramfs/bin initramfs/modules
cp "$(command -v busybox)" initramfs/bin/busybox
cp "$root/tests/survive/cgroup2_init.sh" initramfs/init
chmod +x initramfs/init
for i in "${!modules[@]}"; do
  file=$(find kernel/lib/modules -name "${modules[$i]}.ko" | head -1)
  [[ -z $file ]] || cp "$file" "initramfs/modules/$(printf %02d "$i")_${modules[$i]}.ko"
done
{
  printf 'cd %q\n' "$root"
  for name in LEADLINE_SHARED LEADLINE_PATIENCE; do
    [[ -z ${!name:-} ]] || printf 'export %s=%q\n' "$name" "${!name}"
  done
  printf 'exec'
  printf ' %q' "$@"
  echo
} >initramfs/command
(cd initramfs && find . | cpio -o -H newc --quiet) >initramfs.cpio
truncate -s "${VM_SWAP:-1000}M" swap.img

accelerator=${VM_ACCELERATOR:-$([[ -w /dev/kvm ]] && echo kvm || echo tcg)}
processor=$([[ $accelerator == kvm ]] && echo host || echo max)
status=0
timeout "${VM_SECONDS:-3600}" qemu-system-x86_64 -machine q35 -accel "$accelerator" -cpu "$processor" -smp "${VM_CPUS:-2}" \
  -m "${VM_MEMORY:-3000}" -nographic -no-reboot -nic none -kernel "$image" -initrd initramfs.cpio \
  -append "console=ttyS0 quiet panic=-1 psi=1 mitigations=off no_timer_check" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  -drive file=swap.img,format=raw,if=virtio,cache=unsafe </dev/null | sed -u 's/\r//g' | tee console.log || status=$?
rm -f swap.img
code=$(sed -n 's/^the command ended with code \([0-9]*\)$/\1/p' console.log | tail -1)
if [[ -z $code ]]; then
  echo "cgroup2_vm: the machine ended without a result (qemu: $status; its console: $work/console.log)." >&2
  echo "cgroup2_vm: where nested virtualization does not work, VM_ACCELERATOR=tcg emulates." >&2
  exit 1
fi
exit "$code"
