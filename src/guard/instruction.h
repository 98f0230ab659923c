// SPDX-License-Identifier: Apache-2.0
// Which extension of the CPU an instruction belongs to, as far as its first bytes tell.
#pragma once

#include <span>
#include <string>

namespace leadline::guard {

struct InstructionClass {
  std::string name;  ///< "AVX2"; "trap" for one that is there to stop the program; empty: not known
  std::string flag;  ///< the CPU's flag in /proc/cpuinfo; empty: none
};

/// For the machine this program was built for (x86-64, aarch64).
InstructionClass classify_instruction(std::span<const unsigned char> bytes);

/// The decoders, for tests on any machine.
InstructionClass classify_x86(std::span<const unsigned char> bytes);
InstructionClass classify_aarch64(std::span<const unsigned char> bytes);

}  // namespace leadline::guard
