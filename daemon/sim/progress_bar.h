// ProgressBar: on stderr, when that is a terminal.
#ifndef METS_DAEMON_SIM_PROGRESS_BAR_H_
#define METS_DAEMON_SIM_PROGRESS_BAR_H_

namespace mets::sim {

// Not thread-safe. Borrows `what`. Its line ends with it, so that what is said
// next has a line of its own.
class ProgressBar {
 public:
  explicit ProgressBar(const char* what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(double share);  // 0 to 1.

 private:
  const char* const what_;
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_PROGRESS_BAR_H_
