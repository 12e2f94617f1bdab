#include "client/ctl/program_folder.h"

#include <unistd.h>

#include <climits>

namespace mets::ctl {

std::string ProgramFolder() {
  char self[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
  if (size <= 0 || size == sizeof(self)) return "";
  const std::string path(self, size);
  return path.substr(0, path.rfind('/'));
}

}  // namespace mets::ctl
