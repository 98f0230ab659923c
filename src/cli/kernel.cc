// SPDX-License-Identifier: Apache-2.0
// `leadline kernel`: kernelspecs whose kernels are supervised. The work is done in Python, which has Jupyter's
// libraries.
#include <fmt/core.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cli/command.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

constexpr const char* kExamples =
    "  leadline kernel install                    python3-leadline: python3, but a death is explained under its cell\n"
    "  leadline kernel install --kernel tf --name tf-guarded --sys-prefix\n"
    "  leadline kernel uninstall\n"
    "\n"
    "JupyterLab and Notebook need no kernelspec of their own: installing Leadline beside them is enough. This one is "
    "for\n"
    "front ends that start kernels themselves, such as VS Code.";

/// The Python that was installed with this program: the one beside it, however the program was found.
std::string own_python() {
  const auto* const started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const std::string path = started_as != nullptr ? started_as : "";
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    for (const char* const name : {"python3", "python"}) {
      const std::string candidate = path.substr(0, slash + 1) + name;
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  return "python3";
}

class KernelCommand final : public Command {
 public:
  explicit KernelCommand(CLI::App& program)
      : Command(program, "kernel", "Install a Jupyter kernel that says why it died, in any front end", kExamples) {
    add_option("ACTION", words_, "install or uninstall; or, after --, the command of a kernel to supervise").required();
    add_option("--kernel", kernel_, "The kernelspec to supervise (default: python3)").placeholder("NAME");
    add_option("--name", name_, "Name of the new one (default: the old name and -leadline)").placeholder("NAME");
    add_option("--display-name", display_name_, "As front ends show it").placeholder("TEXT");
    add_option("--prefix", prefix_, "Install it into this environment (default: the user's folder)")
        .placeholder("PATH");
    add_flag("--sys-prefix", sys_prefix_, "Install it into the environment of this program's Python");
    add_option("--python", python_, "The Python that has Leadline (default: the one beside this program)")
        .placeholder("PATH");
  }

  void run() override;

 private:
  std::vector<std::string> words_;
  std::string kernel_, name_, display_name_, prefix_, python_;
  bool sys_prefix_ = false;
};

void KernelCommand::run() {
  const std::string python = python_.empty() ? own_python() : python_;
  std::vector<std::string> command = {python, "-m", "leadline.jupyter"};
  const bool acts = words_.size() == 1 && (words_[0] == "install" || words_[0] == "uninstall");
  if (!acts) command.emplace_back("--");
  command.insert(command.end(), words_.begin(), words_.end());
  const auto add = [&](const char* option, const std::string& value) {
    if (acts && !value.empty()) command.insert(command.end(), {option, value});
  };
  add("--kernel", kernel_);
  add("--name", name_);
  add("--display-name", display_name_);
  add("--prefix", prefix_);
  if (acts && sys_prefix_) command.emplace_back("--sys-prefix");
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Error(ErrorCode::kIo, fmt::format("cannot start '{}': {}; name a Python that has Leadline with --python",
                                          python, std::strerror(errno)));
}

}  // namespace

std::unique_ptr<Command> kernel_command(CLI::App& program) { return std::make_unique<KernelCommand>(program); }

}  // namespace leadline::cli
