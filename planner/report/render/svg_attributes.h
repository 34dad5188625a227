// Colours and strokes of the style sheet as attributes, for viewers of an SVG without it.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::report {

/// ` fill="#1551a5" stroke="#fff"`: what the style sheet says, on a light page, of such an element
/// with these classes. A page's own style sheet overrides it; a viewer that takes the picture out
/// of its page, or knows no custom properties, has nothing else.
std::string svg_attributes(std::string_view element, std::string_view classes);

}  // namespace shardplan::report
