// AdminClient: metsctl's connection to admin.sock.
#ifndef METS_CLIENT_CTL_ADMIN_CLIENT_H_
#define METS_CLIENT_CTL_ADMIN_CLIENT_H_

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

// One administrator's calls; each blocks for at most ten seconds.
class AdminClient {
 public:
  static absl::StatusOr<AdminClient> Connect(const std::string& run_dir);

  absl::StatusOr<v1::GetStatusResponse> GetStatus();
  // NOT_FOUND, naming the jobs there are, for an unknown job.
  absl::Status SetLimit(const std::string& job, Bytes limit);

 private:
  explicit AdminClient(std::unique_ptr<v1::AdminService::Stub> stub)
      : stub_(std::move(stub)) {}

  std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_ADMIN_CLIENT_H_
