#include <string>

#include "runtime/embedded/embedded.hpp"
#include "runtime/shipped/shipped.hpp"

namespace kiln::shipped {
namespace {

constexpr std::string_view kSchema = "schema/shape_table.schema.json";
constexpr std::string_view kSchemaFolder = "schema/";

}  // namespace

Result<std::string_view> schema() {
    const embedded::EmbeddedFile* schema = embedded::find(embedded::shape_files(), kSchema);
    if (schema == nullptr) {
        return fail(ErrorCode::internal, Stage::table,
                    "the library was built without the schema of its shape tables");
    }
    return schema->text;
}

tables::Layer texts() {
    tables::Layer layer{tables::LayerKind::shipped, {}, {}};
    for (const embedded::EmbeddedFile& file : embedded::shape_files()) {
        if (!file.path.starts_with(kSchemaFolder)) {
            layer.texts.push_back({"shapes/" + std::string(file.path), std::string(file.text)});
        }
    }
    return layer;
}

}  // namespace kiln::shipped
