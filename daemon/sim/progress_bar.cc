#include "daemon/sim/progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace mets::sim {

ProgressBar::ProgressBar(const char* what)
    : what_(what), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs("\n", stderr);
}

void ProgressBar::Show(double share) {
  if (!terminal_) return;
  constexpr int kWidth = 40;
  const int full = static_cast<int>(share * kWidth);
  std::fprintf(stderr, "\r%-12s [%s%s] %3.0f %%", what_,
               std::string(full, '#').c_str(),
               std::string(kWidth - full, ' ').c_str(), 100 * share);
  shown_ = true;
}

}  // namespace mets::sim
