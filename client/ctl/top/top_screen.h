// TopScreen: a terminal, by ncurses.
#ifndef METS_CLIENT_CTL_TOP_TOP_SCREEN_H_
#define METS_CLIENT_CTL_TOP_TOP_SCREEN_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/top/top_view.h"

namespace mets::ctl {

// What was typed; other keys are their characters.
enum TopKey {
  kNoKey = -1,
  kKeyResized = 0x1000,
  kKeyUp,
  kKeyDown,
  kKeyPageUp,
  kKeyPageDown,
  kKeyLeft,
  kKeyRight,
  kKeyEscape,
  kKeyEnter,
  kKeyBackspace,
};

// Takes the terminal while it exists; one at a time in a process. Not
// thread-safe.
class TopScreen {
 public:
  // FAILED_PRECONDITION when the terminal cannot show it (TERM).
  static absl::StatusOr<std::unique_ptr<TopScreen>> Open();
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  int width() const;
  int height() const;
  void Show(const std::vector<TopLine>& lines);
  // The next key; kNoKey when none came within `wait`.
  int ReadKey(absl::Duration wait);

 private:
  TopScreen() = default;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_TOP_TOP_SCREEN_H_
