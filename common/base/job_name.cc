#include "common/base/job_name.h"

#include "common/base/plain_name.h"

namespace mets {

absl::Status ValidateJobName(absl::string_view name) {
  return ValidatePlainName("job", name);
}

}  // namespace mets
