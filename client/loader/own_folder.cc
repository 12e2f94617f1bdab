#include "client/loader/own_folder.h"

#include <dlfcn.h>

namespace mets {

std::string OwnFolder() {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace mets
