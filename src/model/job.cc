#include "model/job.h"

namespace commlens {

std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::metadata: return "metadata";
    case Evidence::host_operation: return "host_operation";
    case Evidence::host_nesting: return "host_nesting";
    case Evidence::kernel_name: return "kernel_name";
    case Evidence::user_rule: return "user_rule";
    case Evidence::host_interval: return "host_interval";
  }
  return "?";
}

}  // namespace commlens
