#include "model/ledger.h"

namespace commlens {

std::string_view rate_source_name(RateSource source) {
  switch (source) {
    case RateSource::none: return "none";
    case RateSource::peak: return "peak";
    case RateSource::calibration: return "calibration";
    case RateSource::fit: return "fit";
    case RateSource::model: return "model";
  }
  return "";
}

}  // namespace commlens
