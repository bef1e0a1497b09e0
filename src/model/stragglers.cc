#include "model/stragglers.h"

namespace commlens {

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::certain: return "certain";
    case Confidence::likely: return "likely";
    case Confidence::undecidable: return "undecidable";
  }
  return "";
}

}  // namespace commlens
