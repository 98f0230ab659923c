// SPDX-License-Identifier: Apache-2.0
// A process and everything it started, as /proc shows it. Processes come and go while one looks: what cannot be read is
// not there. The root is a child subreaper, so a process that loses its parent inside the tree stays in the tree.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leadline::guard {

struct ProcessMemory {
  int64_t resident = 0;    ///< anonymous and shared pages; pages of mapped files are not counted, they can be dropped
  int64_t file = 0;        ///< pages of mapped files
  int64_t high_water = 0;  ///< the most that both together were; the kernel's own count
};
std::optional<ProcessMemory> process_memory(pid_t pid);

/// A process. Its start, in the kernel's ticks, separates it from a later one with the same id.
struct Process {
  pid_t pid = 0;
  uint64_t start = 0;
};

/// The root first, then its descendants, without zombies. Empty when the root is gone.
std::vector<Process> process_tree(pid_t root);

/// The children of a process, zombies too.
std::vector<pid_t> children_of(pid_t parent);

/// Resident bytes of the processes. Pages that several of them share after a fork count once when a plain sum would
/// pass `limit` (0: plain sum), for that takes longer to find out.
int64_t tree_memory(const std::vector<Process>& tree, int64_t limit);

/// The most memory that the processes are known to have had, with pages of files: the kernel's own peak of one process;
/// of several, what they have now, pages that they share counted once. Nothing above `known` takes the time for that.
int64_t tree_peak(const std::vector<Process>& tree, int64_t known);

/// Kills what descends from `root`, then `root`. Everything is stopped first, so that nothing forks away.
/// The root is an unreaped child of the caller, or the caller.
void kill_tree(pid_t root);

/// Kills what a root that is dead but not reaped has left to others: members of the session it led (`session`, 0:
/// none), processes whose environment has `marker`, and those of `known`. Returns when they are gone, or after some
/// seconds.
void kill_leftovers(pid_t session, const std::string& marker, const std::vector<Process>& known);

/// Kills and reaps every child of the calling process, and the children that these leave to it.
void kill_children();

/// A descriptor for the process, or -1 where the kernel has none.
int open_pidfd(pid_t pid);

}  // namespace leadline::guard
