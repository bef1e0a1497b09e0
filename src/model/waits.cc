#include "model/waits.h"

namespace commlens {

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::compute: return "compute";
    case Cause::host: return "host";
    case Cause::link: return "link";
    case Cause::imbalance: return "imbalance";
  }
  return "";
}

}  // namespace commlens
