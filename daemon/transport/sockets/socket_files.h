// Where the daemon's sockets lie and who may use them.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_FILES_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_FILES_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mets::transport {

// Mode and group of a socket file.
struct SocketAccess {
  mode_t mode = 0600;
  std::optional<gid_t> group;  // None: as the file is made.
};

// Paths of the sockets in a run directory.
struct SocketPaths {
  std::string fd;
  std::string session;
  std::string admin;
};
SocketPaths SocketsIn(const std::string& run_dir);

// Whether the sockets' paths in `dir` are short enough. INVALID_ARGUMENT.
absl::Status CheckPathLength(const std::string& dir);

// Whether sockets could be made in the run directory, by who may write there:
// what is there is a directory that not everybody may write to (who could
// replace the sockets), or its parent exists; and CheckPathLength. NOT_FOUND
// for a missing parent, else INVALID_ARGUMENT; each text names the path.
absl::Status CheckRunDir(const std::string& run_dir);

// Checks the run directory, and makes it where it is missing. As CheckRunDir,
// or PERMISSION_DENIED.
absl::Status PrepareRunDir(const std::string& run_dir);

// OK when nobody listens at `path`, and no file is left there. ALREADY_EXISTS,
// naming the path, when somebody does or when it is no socket.
absl::Status ClearSocketPath(const std::string& path);

absl::Status ApplyAccess(const std::string& path, const SocketAccess& access);

// The number of a group. NOT_FOUND, naming it, when there is none.
absl::StatusOr<gid_t> FindGroup(const std::string& name);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_FILES_H_
