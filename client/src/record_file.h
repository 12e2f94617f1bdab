// RecordFile: a recording that goes to a file of this process.
#ifndef METS_CLIENT_SRC_RECORD_FILE_H_
#define METS_CLIENT_SRC_RECORD_FILE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/src/recorder.h"
#include "common/trace/text_file.h"

namespace mets::client {

// A thread that takes a recorder's text and writes it. When the file cannot be
// written, the recording ends. The recorder is borrowed; it must be on.
class RecordFile {
 public:
  static absl::StatusOr<std::unique_ptr<RecordFile>> Open(
      const std::string& path, Recorder& recorder);
  // Stops the recording.
  ~RecordFile();

  // Stops the recording and completes the file; blocks for that. The first
  // error of writing.
  absl::Status Finish();

 private:
  RecordFile(std::unique_ptr<trace::TextFileWriter> file, Recorder& recorder);
  void Run();
  absl::Status WriteAll(bool* last);

  Recorder& recorder_;
  std::unique_ptr<trace::TextFileWriter> file_;  // Of the thread.
  absl::Status status_;                          // Of the thread, until joined.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_RECORD_FILE_H_
