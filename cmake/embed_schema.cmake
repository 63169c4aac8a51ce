# vmonce_embed_schema(<target> <folder>): the numbered .sql files of schema/<folder> become
# EmbeddedMigrations() of src/ledger/migrate.h. Written when CMake runs, which it does anew when one of them changes.
function(vmonce_embed_schema target folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/schema/${folder}/*.sql)
  list(SORT files)
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX MATCH "^[0-9]+" digits ${name})
    math(EXPR number "1${digits} - 10000")
    file(READ ${file} sql)
    string(APPEND rows "    {${number}, \"${name}\", R\"sql(${sql})sql\"},\n")
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/generated/${folder}_schema.cc)
  file(CONFIGURE OUTPUT ${output} CONTENT "// Made by cmake/embed_schema.cmake.
#include \"ledger/migrate.h\"

namespace vmonce::ledger {
namespace {
constexpr Migration kMigrations[] = {
${rows}};
}  // namespace
std::span<const Migration> EmbeddedMigrations() { return kMigrations; }
}  // namespace vmonce::ledger
" @ONLY)
  target_sources(${target} PRIVATE ${output})
endfunction()
