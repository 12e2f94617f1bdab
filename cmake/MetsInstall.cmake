# cmake --install: programs, libraries, plug-ins, headers, units, configuration and
# documents. DESTDIR and --prefix work as usual; the units name the prefix that was
# configured (CMAKE_INSTALL_PREFIX).
include(GNUInstallDirs)

# The wheel: below the folder of the package mets.
if(SKBUILD)
  set(METS_WHEEL_LIBRARIES mets mets_torch)
  if(METS_WITH_TENSORFLOW)
    list(APPEND METS_WHEEL_LIBRARIES
         mets_tf_allocator_tf mets_tf_allocator_loader)
  endif()
  install(TARGETS ${METS_WHEEL_LIBRARIES}
          LIBRARY DESTINATION lib COMPONENT wheel)
  install(TARGETS metsctl RUNTIME DESTINATION bin COMPONENT wheel)
  add_custom_target(mets_wheel)
  add_dependencies(mets_wheel ${METS_WHEEL_LIBRARIES} metsctl)
  return()
endif()

# Plug-ins find libmets beside them, and metsctl finds both from its own folder.
set(METS_INSTALL_LIBDIR lib/mets)

install(TARGETS metsd metsctl mets-sim mets-bench-worker
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(mets-bench-worker PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${METS_INSTALL_LIBDIR}")
install(TARGETS mets mets_torch LIBRARY DESTINATION ${METS_INSTALL_LIBDIR})
if(METS_WITH_TENSORFLOW)
  install(TARGETS mets_tf_allocator_tf mets_tf_allocator_loader
          LIBRARY DESTINATION ${METS_INSTALL_LIBDIR})
  if(TARGET mets_tf_allocator_tf_cuda)
    install(TARGETS mets_tf_allocator_tf_cuda
            LIBRARY DESTINATION ${METS_INSTALL_LIBDIR})
  endif()
endif()
install(DIRECTORY client/python/mets DESTINATION ${METS_INSTALL_LIBDIR}/python
        FILES_MATCHING PATTERN "*.py")
# The operator speed-up tool; its copy in the build folder uses the sources.
set(METS_OPSPEEDUP_FOLDER ${CMAKE_SOURCE_DIR}/figures)
configure_file(figures/opspeedup/mets-opspeedup.in
               ${CMAKE_BINARY_DIR}/bin/mets-opspeedup @ONLY)
set(METS_OPSPEEDUP_FOLDER "$here/../${METS_INSTALL_LIBDIR}/python")
configure_file(figures/opspeedup/mets-opspeedup.in
               ${CMAKE_BINARY_DIR}/opspeedup/mets-opspeedup @ONLY)
install(PROGRAMS ${CMAKE_BINARY_DIR}/opspeedup/mets-opspeedup
        DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY figures/opspeedup
        DESTINATION ${METS_INSTALL_LIBDIR}/python
        FILES_MATCHING PATTERN "*.py")

install(FILES client/include/mets/mets.h client/include/mets/mets.hpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mets)

configure_file(deploy/systemd/metsd.service.in
               ${CMAKE_BINARY_DIR}/systemd/metsd.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/systemd/metsd.service
              deploy/systemd/metsd.socket deploy/systemd/metsd-admin.socket
        DESTINATION lib/systemd/system)
install(FILES deploy/systemd/mets.sysusers.conf
        DESTINATION lib/sysusers.d RENAME mets.conf)
install(FILES deploy/systemd/mets.tmpfiles.conf
        DESTINATION lib/tmpfiles.d RENAME mets.conf)

install(FILES LICENSE README.md deploy/config/metsd.toml
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy/prometheus deploy/grafana
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mets)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
# An operator's file stays. file(INSTALL) minds DESTDIR by itself.
install(CODE "
  set(folder \"${CMAKE_INSTALL_FULL_SYSCONFDIR}/mets\")
  if(NOT EXISTS \"\$ENV{DESTDIR}\${folder}/metsd.toml\")
    file(INSTALL \"${CMAKE_SOURCE_DIR}/deploy/config/metsd.toml\"
         DESTINATION \"\${folder}\")
  endif()")
