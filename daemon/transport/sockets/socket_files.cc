#include "daemon/transport/sockets/socket_files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/ipc/socket_file.h"

namespace mets::transport {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

SocketPaths SocketsIn(const std::string& run_dir) {
  return {absl::StrCat(run_dir, "/fd.sock"),
          absl::StrCat(run_dir, "/session.sock"),
          absl::StrCat(run_dir, "/admin.sock")};
}

absl::Status CheckPathLength(const std::string& dir) {
  return ipc::SocketAddress(SocketsIn(dir).session).status();  // The longest.
}

absl::Status CheckRunDir(const std::string& run_dir) {
  METS_RETURN_IF_ERROR(CheckPathLength(run_dir));
  struct stat info;
  if (stat(run_dir.c_str(), &info) != 0) {
    if (errno != ENOENT || access(ParentOf(run_dir).c_str(), F_OK) == 0) {
      return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat(
        "run directory ", run_dir, " cannot be made: ", ParentOf(run_dir),
        " does not exist; create it or choose another --run-dir"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("run directory ", run_dir, " is not a directory"));
  }
  if ((info.st_mode & S_IWOTH) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "every user may write to the run directory ", run_dir,
      ", and so put sockets of their own in the place of metsd's; chmod o-w "
      "it, or choose a directory of its own, such as --run-dir ",
      run_dir, run_dir == "/" ? "" : "/", "mets"));
}

absl::Status PrepareRunDir(const std::string& run_dir) {
  METS_RETURN_IF_ERROR(CheckRunDir(run_dir));
  struct stat info;
  if (stat(run_dir.c_str(), &info) == 0) {
    if (faccessat(AT_FDCWD, run_dir.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
      return absl::OkStatus();
    }
    return ErrnoToStatus(
        errno, absl::StrCat("run directory ", run_dir, " belongs to uid ",
                            info.st_uid, ", and metsd, with uid ", geteuid(),
                            ", cannot make sockets there; give it the "
                            "directory or choose another --run-dir"));
  }
  if (mkdir(run_dir.c_str(), 0755) == 0) return absl::OkStatus();
  return ErrnoToStatus(
      errno, absl::StrCat("run directory ", run_dir,
                          " cannot be made; choose another --run-dir"));
}

absl::Status ClearSocketPath(const std::string& path) {
  METS_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::SocketAddress(path));
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoToStatus(errno, absl::StrCat("look at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists and is no socket; remove it"));
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoToStatus(errno, "socket");
  const bool occupied =
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
  if (occupied || errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(absl::StrCat(
        path,
        " is in use: another metsd listens there; stop it or choose "
        "another --run-dir"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoToStatus(errno, absl::StrCat("remove ", path));
  }
  return absl::OkStatus();
}

absl::Status ApplyAccess(const std::string& path, const SocketAccess& access) {
  if (access.group.has_value() &&
      chown(path.c_str(), static_cast<uid_t>(-1), *access.group) != 0) {
    return ErrnoToStatus(
        errno, absl::StrCat("give ", path, " to group ", *access.group));
  }
  if (chmod(path.c_str(), access.mode) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("chmod ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<gid_t> FindGroup(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  group entry;
  group* found = nullptr;
  const int error =
      getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return entry.gr_gid;
  if (error != 0) return ErrnoToStatus(error, absl::StrCat("group ", name));
  return absl::NotFoundError(absl::StrCat("there is no group '", name, "'"));
}

}  // namespace mets::transport
