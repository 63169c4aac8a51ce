# What is installed, and the Debian package of it: `make deb`.
include(GNUInstallDirs)
set(DEBIAN ${PROJECT_SOURCE_DIR}/packaging/debian)

install(TARGETS vmonce RUNTIME DESTINATION bin)
install(FILES packaging/vmonce.toml DESTINATION /etc/vmonce)
install(FILES packaging/systemd/vmonce.service DESTINATION /lib/systemd/system)
install(FILES packaging/systemd/vmonce.sysusers DESTINATION lib/sysusers.d RENAME vmonce.conf)
install(FILES packaging/systemd/vmonce.tmpfiles DESTINATION lib/tmpfiles.d RENAME vmonce.conf)
install(FILES packaging/monitoring/vmonce.rules.yml packaging/monitoring/vmonce.dashboard.json
        DESTINATION share/vmonce)
install(FILES README.md DESTINATION share/doc/vmonce)
install(DIRECTORY docs/ DESTINATION share/doc/vmonce/docs PATTERN decisions EXCLUDE)
install(FILES ${DEBIAN}/copyright DESTINATION share/doc/vmonce)
# Debian wants changelogs compressed.
foreach(name_and_source "CHANGELOG.md.gz ${PROJECT_SOURCE_DIR}/CHANGELOG.md" "changelog.gz ${DEBIAN}/changelog")
  string(REPLACE " " ";" pair ${name_and_source})
  list(GET pair 0 name)
  list(GET pair 1 source)
  install(CODE "execute_process(COMMAND gzip -9 -n -c ${source} COMMAND_ERROR_IS_FATAL ANY
                                OUTPUT_FILE ${PROJECT_BINARY_DIR}/${name})")
  install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION share/doc/vmonce)
endforeach()

# The program writes its own man pages and completion scripts.
install(CODE "
  set(pages ${PROJECT_BINARY_DIR}/pages)
  file(REMOVE_RECURSE \${pages})
  file(MAKE_DIRECTORY \${pages}/man)
  execute_process(COMMAND $<TARGET_FILE:vmonce> man --directory \${pages}/man COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB made \${pages}/man/*.1)
  execute_process(COMMAND gzip -9 -n \${made} COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND $<TARGET_FILE:vmonce> completion \${shell} OUTPUT_FILE \${pages}/\${shell}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/man/ DESTINATION share/man/man1)
install(FILES ${PROJECT_BINARY_DIR}/pages/bash DESTINATION share/bash-completion/completions RENAME vmonce)
install(FILES ${PROJECT_BINARY_DIR}/pages/zsh DESTINATION share/zsh/vendor-completions RENAME _vmonce)
install(FILES ${PROJECT_BINARY_DIR}/pages/fish DESTINATION share/fish/vendor_completions.d RENAME vmonce.fish)

# Only the program is packaged: packing needs no test to be built.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vmonce)
set(CPACK_PACKAGE_VENDOR "The vmonce authors")
set(CPACK_PACKAGE_CONTACT "The vmonce authors <vmonce@vmonce.dev>")
set(CPACK_PACKAGE_HOMEPAGE_URL "https://vmonce.dev")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "creates virtual machines exactly once")
set(CPACK_PACKAGE_DESCRIPTION
    "A service that takes requests for virtual machines with an Idempotency-Key,
records each in one transaction and drives libvirt and QEMU until the outcome
is known. However often a request is sent again, before, during or after a
crash, there is one machine for it.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR OFF)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The embedded hypervisor is a plugin of libvirt, which no shared library's dependency names.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libvirt-daemon, libvirt-daemon-driver-qemu, qemu-system-x86, qemu-utils, genisoimage, systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libvirt-clients")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${DEBIAN}/postinst ${DEBIAN}/prerm ${DEBIAN}/postrm ${DEBIAN}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
