#include "daemon/app/recovery/state_writer.h"

#include <unistd.h>

#include <utility>

#include "daemon/app/recovery/state_file.h"

namespace mets::app {

StateWriter::StateWriter(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

StateWriter::~StateWriter() { Stop(); }

void StateWriter::Changed(bool urgent) {
  absl::MutexLock lock(&mutex_);
  changed_ = true;
  used_ = true;
  urgent_ = urgent_ || urgent;
}

void StateWriter::Stop() {
  bool used;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
    used = used_;
  }
  thread_.join();
  if (used) Write();
}

void StateWriter::Run() {
  const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return changed_ || stopping_;
  };
  const auto hurry = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return urgent_ || stopping_;
  };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(
          absl::Condition(&changed),
          failing_ ? options_.retry : absl::InfiniteDuration());
      if (stopping_) return;
      changed_ = false;
      urgent_ = false;
    }
    Write();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&hurry), options_.period);
  }
}

void StateWriter::Write() {
  std::string text = options_.render();
  if (text == last_text_ && access(options_.path.c_str(), F_OK) == 0) return;
  const absl::Status status = StoreText(options_.path, text);
  if (status.ok()) last_text_ = std::move(text);
  if (status.ok() == failing_) options_.on_outcome(status);
  failing_ = !status.ok();
}

}  // namespace mets::app
