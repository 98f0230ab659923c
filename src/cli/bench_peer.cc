// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_peer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "io/descriptor.h"
#include "leadline/error.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

/// The versions that the published results were measured with.
const std::map<std::string, std::string> kPackages = {{"litert", "ai-edge-litert==2.3.0"},
                                                      {"openvino", "openvino==2026.4.1"}};

pid_t spawn(std::vector<std::string> arguments, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int problem = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) {
    throw Error(ErrorCode::kIo, fmt::format("cannot start '{}', which runs the other engines: {}; name a Python with "
                                            "--python",
                                            arguments[0], std::strerror(problem)));
  }
  return pid;
}

}  // namespace

Peer::Peer(const std::string& python, const std::string& engine, const std::string& model, int threads,
           const std::string& inputs_path)
    : engine_(engine) {
  signal(SIGPIPE, SIG_IGN);  // an engine that died is found when it does not answer
  Pipe requests = make_pipe();
  Pipe answers = make_pipe();
  pid_ = spawn({python, "-c", kBenchEngine, engine, model, std::to_string(threads), inputs_path},
               requests.reading.get(), answers.writing.get());
  requests.reading.close();
  answers.writing.close();
  requests_ = fdopen(requests.writing.release(), "w");
  answers_ = fdopen(answers.reading.release(), "r");
  start_ = answer();
  if (start_.contains("missing")) {
    const auto package = kPackages.find(engine);
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{} cannot run {}: {}. Install it there, or name another Python with --python:\n"
                            "  {} -m pip install {} numpy",
                            python, engine, start_.at("error").text(), python,
                            package == kPackages.end() ? engine : package->second));
  }
  if (works()) peak_bytes_ = start_.at("peak_bytes").integer();
}

Peer::~Peer() {
  if (requests_ != nullptr) fclose(requests_);  // the end of its input is the end of its work
  if (answers_ != nullptr) fclose(answers_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

Json Peer::answer() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, answers_);
  const std::string text = length > 0 ? std::string(line, static_cast<size_t>(length)) : std::string();
  std::free(line);
  try {
    Json document = parse_json(text);
    if (document.is_object()) return document;
  } catch (const JsonError&) {  // what it printed before it died
  }
  int status = 0;
  if (text.empty() && waitpid(pid_, &status, 0) == pid_) pid_ = -1;
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return {{"error", fmt::format("the process {} without an answer", how)}};
}

Json Peer::ask(const Json& request) {
  const std::string line = request.dump() + "\n";
  fwrite(line.data(), 1, line.size(), requests_);
  fflush(requests_);
  Json reply = answer();
  if (reply.contains("error")) {
    throw Error(ErrorCode::kRuntime, fmt::format("{}: {}", engine_, reply.at("error").text()));
  }
  return reply;
}

std::vector<double> Peer::run(int count) {
  const Json reply = ask({{"run", count}});
  peak_bytes_ = reply.at("peak_bytes").integer();
  std::vector<double> milliseconds;
  for (const Json& run : reply.at("ms").items()) milliseconds.push_back(run.number());
  return milliseconds;
}

void Peer::save(const std::string& path) { ask({{"save", path}}); }

}  // namespace leadline::cli
