// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace leadline {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);             // before a bar appears
constexpr auto kBetweenDraws = std::chrono::milliseconds(100);  // often enough to look alive
constexpr int kBarLetters = 30;

volatile std::sig_atomic_t stop_requested = 0;

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

extern "C" void request_stop(int signal) {
  stop_requested = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), start_(Clock::now()), drawn_(start_), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

std::string ProgressBar::line(const std::string& title, int64_t done, int64_t total, int columns, int64_t seconds) {
  const double part = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 1.0;
  const auto full = static_cast<size_t>(part * kBarLetters);
  std::string text = fmt::format("{} [{:<{}}] {:3.0f} %  {}:{:02}", title, std::string(full, '#'), kBarLetters,
                                 part * 100, seconds / 60, seconds % 60);
  if (text.size() > static_cast<size_t>(std::max(columns, 0))) text.resize(static_cast<size_t>(std::max(columns, 0)));
  return text;
}

void ProgressBar::update(int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - start_ < kPatience || (visible_ && now - drawn_ < kBetweenDraws)) return;
  drawn_ = now;
  visible_ = true;
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  // One column is left free: some terminals wrap as soon as the last column is used.
  fmt::print(stderr, "\r{}\x1b[K", line(title_, done, total, terminal_columns() - 1, seconds));
  std::fflush(stderr);
}

StopOnSignal::StopOnSignal() {
  stop_requested = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, request_stop) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

StopOnSignal::~StopOnSignal() {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

bool StopOnSignal::stopped() { return stop_requested != 0; }

}  // namespace leadline
