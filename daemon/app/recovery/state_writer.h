// StateWriter: keeps the state file true.
#ifndef METS_DAEMON_APP_RECOVERY_STATE_WRITER_H_
#define METS_DAEMON_APP_RECOVERY_STATE_WRITER_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mets::app {

// Writes the text of `render` to a file whenever Changed was called: at once
// when urgent, else at most once per `period`. Texts equal to the last one are
// not written while the file is there. Thread-safe; render runs in the writer's
// thread. A write that fails is tried again at the next change and every
// `retry`; on_outcome is told of the first that fails, and of the first that
// succeeds after it.
class StateWriter {
 public:
  struct Options {
    std::string path;
    absl::Duration period = absl::Milliseconds(50);
    absl::Duration retry = absl::Seconds(1);
    std::function<std::string()> render;
    std::function<void(const absl::Status&)> on_outcome;
  };

  explicit StateWriter(Options options);
  ~StateWriter();

  void Changed(bool urgent);

  // Ends the thread, after a last write if Changed was ever called.
  void Stop();

 private:
  void Run();
  void Write();

  const Options options_;
  std::string last_text_;
  bool failing_ = false;
  absl::Mutex mutex_;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool used_ ABSL_GUARDED_BY(mutex_) = false;
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_RECOVERY_STATE_WRITER_H_
