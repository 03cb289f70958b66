// Reads the text that ir/print.h writes, and what people write in that language: blank lines, comments from #
// to the end of the line, several statements on a line with `;`, and a > b, a <= b, a >= b, which become what
// C++ code makes of them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/node.h"

namespace pg {

struct ParseOptions {
  /// Makes nodes as code would: constants fold and operands of commutative ops are ordered. Without it the
  /// nodes are those written, which is what reading back a print needs.
  bool canonical = false;
  /// Names the text may use; those it defines are added.
  std::map<std::string, Ref, std::less<>>* names = nullptr;
  /// Number of the first line, for errors.
  int first_line = 1;
};

/// The node of the last line. Inside a GraphScope. Throws ValueError with line and column: "[parse] 3:14:
/// ...". Checks the language and what nodes need to exist; what may stand where is for the specs of
/// rules/spec.h.
Ref parse(std::string_view text, const ParseOptions& options = {});

/// Reads the body of an Object that prints as `tag{body}`; throws ValueError if it cannot. For identity to
/// survive, equal bodies must give the same payload.
using ObjectParser = Payload* (*)(std::string_view body);
/// From then on arguments `tag{...}` are read by this function. Objects of other tags (storage, say) cannot
/// be read.
void register_object(std::string_view tag, ObjectParser parser);

}  // namespace pg
