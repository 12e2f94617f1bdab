#include "client/loader/mets_api.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace mets {
namespace {

template <typename Function>
bool Take(void* library, const char* name, Function* function,
          std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr && missing->empty()) *missing = name;
  return *function != nullptr;
}

std::string TakeAll(void* library, MetsApi* api) {
  std::string missing;
  Take(library, "mets_last_error", &api->last_error, &missing);
  Take(library, "mets_open", &api->open, &missing);
  Take(library, "mets_device_open", &api->device_open, &missing);
  Take(library, "mets_device_get_info", &api->device_get_info, &missing);
  Take(library, "mets_alloc", &api->alloc, &missing);
  Take(library, "mets_free", &api->free, &missing);
  Take(library, "mets_find", &api->find, &missing);
  Take(library, "mets_owns", &api->owns, &missing);
  Take(library, "mets_set_mobility", &api->set_mobility, &missing);
  Take(library, "mets_op_begin", &api->op_begin, &missing);
  Take(library, "mets_op_end", &api->op_end, &missing);
  Take(library, "mets_op_detach", &api->op_detach, &missing);
  Take(library, "mets_op_name", &api->op_name, &missing);
  Take(library, "mets_gate_enter", &api->gate_enter, &missing);
  Take(library, "mets_gate_leave", &api->gate_leave, &missing);
  Take(library, "mets_step_hint", &api->step_hint, &missing);
  Take(library, "mets_get_stats", &api->get_stats, &missing);
  Take(library, "mets_reset_peak", &api->reset_peak, &missing);
  return missing;
}

}  // namespace

std::string LibmetsPath(const std::string& folder) {
  const char* named = std::getenv("METS_LIBRARY");
  if (named != nullptr && *named != '\0') return named;
  const std::string beside = folder + "/libmets.so";
  if (!folder.empty() && access(beside.c_str(), R_OK) == 0) return beside;
  return "libmets.so";
}

bool LoadMetsApi(const std::string& path, MetsApi* api, std::string* error) {
  int flags = RTLD_NOW | RTLD_LOCAL;
#ifdef RTLD_DEEPBIND
  flags |= RTLD_DEEPBIND;
#endif
  void* library = dlopen(path.c_str(), flags);
  if (library == nullptr) {
    *error = std::string("cannot open libmets: ") + dlerror();
    return false;
  }
  std::string missing;
  if (!Take(library, "mets_abi_version", &api->abi_version, &missing)) {
    *error = path + " is not libmets: it has no mets_abi_version";
    return false;
  }
  if (api->abi_version() != METS_ABI_VERSION) {
    *error = path + " has version " + std::to_string(api->abi_version()) +
             " of the interface; this plug-in needs version " +
             std::to_string(METS_ABI_VERSION);
    return false;
  }
  missing = TakeAll(library, api);
  if (!missing.empty()) {
    *error = path + " lacks the function " + missing;
    return false;
  }
  return true;
}

}  // namespace mets
