#include "model/path.h"

namespace commlens {

std::string_view path_class_name(PathClass kind) {
  switch (kind) {
    case PathClass::compute: return "compute";
    case PathClass::transfer: return "transfer";
    case PathClass::host: return "host";
    case PathClass::memory: return "memory";
    case PathClass::unexplained: return "unexplained";
  }
  return {};
}

}  // namespace commlens
