// AdminClient: metsctl's connection to admin.sock.
#ifndef METS_CLIENT_CTL_ADMIN_CLIENT_H_
#define METS_CLIENT_CTL_ADMIN_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "mets/v1/admin.grpc.pb.h"

namespace mets::ctl {

// The run directory for an empty `given`: METS_RUN_DIR, else
// $XDG_RUNTIME_DIR/mets for an ordinary user who has one, else /run/mets.
std::string FindRunDir(const std::string& given);

// OK when somebody listens on the socket at `path` and this user may connect.
// NOT_FOUND and UNAVAILABLE say how to start the daemon, PERMISSION_DENIED
// which group may use the socket.
absl::Status CheckSocket(const std::string& run_dir, const std::string& name);

// One administrator's calls; each blocks for at most ten seconds, but for
// RecordJob and WatchEvents.
class AdminClient {
 public:
  // A recording that runs. Read is for one thread; Stop and Cancel for any.
  class RecordStream {
   public:
    // The next part; false when there is none. Blocks.
    bool Read(std::string* text);
    // Asks for the end; what was recorded until then is still read.
    void Stop();
    // Ends it at once.
    void Cancel() { context_.TryCancel(); }
    bool stopped() const { return stopped_; }
    // How it ended. REQUIRES: Read has returned false, or Cancel was called.
    // ABORTED: the job's process has gone.
    absl::Status Finish();

   private:
    friend class AdminClient;
    grpc::ClientContext context_;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::RecordJobRequest, v1::RecordJobReply>>
        stream_;
    std::atomic<bool> stopped_{false};
  };

  // Events as they come. Read is for one thread, Cancel for any.
  class EventStream {
   public:
    // The next event; false when there is none any more. Blocks.
    bool Read(v1::Event* event) { return reader_->Read(event); }
    // Ends it; Finish is OK then.
    void Cancel();
    // How it ended. REQUIRES: Read has returned false.
    absl::Status Finish();

   private:
    friend class AdminClient;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReader<v1::Event>> reader_;
    std::atomic<bool> cancelled_{false};
  };

  static absl::StatusOr<AdminClient> Connect(const std::string& run_dir);

  absl::StatusOr<v1::GetStatusResponse> GetStatus();
  // NOT_FOUND, naming the jobs there are, for an unknown job.
  absl::Status SetLimit(const std::string& job, Bytes limit);
  // NOT_FOUND, naming what there is, for an unknown device or job.
  absl::Status DrainDevice(const std::string& device, bool drain);
  absl::Status PauseJob(const std::string& job, bool pause);
  // Blocks until nothing more is on its way, for a minute at most.
  absl::StatusOr<v1::EvictJobResponse> EvictJob(const std::string& job);
  // Returns the number of processes that are asked to end.
  absl::StatusOr<int> KillJob(const std::string& job, absl::Duration grace);
  // Begins to record; `device` empty: the only one that the job uses.
  std::unique_ptr<RecordStream> RecordJob(const std::string& job,
                                          const std::string& device);
  // The newest events and, if asked to follow, those that come.
  std::unique_ptr<EventStream> WatchEvents(
      const v1::WatchEventsRequest& request);
  // NOT_FOUND for a job that metsd does not know.
  absl::StatusOr<v1::ExplainJobResponse> ExplainJob(const std::string& job);

 private:
  explicit AdminClient(std::unique_ptr<v1::AdminService::Stub> stub)
      : stub_(std::move(stub)) {}

  std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_ADMIN_CLIENT_H_
