# Debian packages by CPack, one per program: shardplan, shardplan-validate, shardplan-gui and
# shardplan-doc. tools/make_packages.sh makes them; completion scripts and manual pages come from the
# programs themselves.
include(GNUInstallDirs)

set(share ${PROJECT_BINARY_DIR}/share)

# shardplan_manual(PROGRAM [COMMANDS...]): manual pages of the program and of each of its commands,
# from --help, by help2man. Dates are left out: the same commit gives the same bytes.
function(shardplan_manual program)
  set(pages "")
  foreach(command IN ITEMS "" ${ARGN})
    string(JOIN - page ${program} ${command})
    string(STRIP "${command} --help" help)
    list(APPEND pages ${share}/man/${page}.1)
    add_custom_command(OUTPUT ${share}/man/${page}.1
      COMMAND ${CMAKE_COMMAND} -E make_directory ${share}/man
      COMMAND ${CMAKE_COMMAND} -E env SOURCE_DATE_EPOCH=0
        ${HELP2MAN} --no-info --section=1 --help-option=${help}
        --name=${SHARDPLAN_ABOUT_${program}} --output=${share}/man/${page}.1 $<TARGET_FILE:${program}>
      DEPENDS ${program} VERBATIM)
  endforeach()
  add_custom_target(${program}-manual DEPENDS ${pages})
  set(pages_of_${program} ${pages} PARENT_SCOPE)
endfunction()

find_program(HELP2MAN help2man)
set(SHARDPLAN_ABOUT_shardplan "will a training job fit, how fast will it run, what would change that")
set(SHARDPLAN_ABOUT_shardplan-validate "run a training job and compare it with its prediction")

if(HELP2MAN)
  shardplan_manual(shardplan
    fit model estimate compare max search export accuracy simulate calibrate report catalog lint
    import completion)
  shardplan_manual(shardplan-validate)
  add_custom_target(manual DEPENDS shardplan-manual shardplan-validate-manual)
  foreach(program shardplan shardplan-validate)
    install(FILES ${pages_of_${program}} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
      COMPONENT ${program} EXCLUDE_FROM_ALL)
  endforeach()
endif()

set(completion_bash ${share}/completion/shardplan)
set(completion_zsh ${share}/completion/_shardplan)
set(completion_fish ${share}/completion/shardplan.fish)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${completion_${shell}}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${share}/completion
    COMMAND shardplan completion ${shell} --output ${completion_${shell}}
    DEPENDS shardplan VERBATIM)
endforeach()
add_custom_target(completions DEPENDS ${completion_bash} ${completion_zsh} ${completion_fish})
install(FILES ${completion_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  COMPONENT shardplan EXCLUDE_FROM_ALL)
install(FILES ${completion_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  COMPONENT shardplan EXCLUDE_FROM_ALL)
install(FILES ${completion_fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT shardplan EXCLUDE_FROM_ALL)

install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/shardplan-doc
  COMPONENT shardplan-doc EXCLUDE_FROM_ALL)
install(DIRECTORY docs configs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/shardplan-doc
  COMPONENT shardplan-doc EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardplan)
set(CPACK_PACKAGE_CONTACT "the shardplan developers <shardplan@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL shardplan shardplan-validate shardplan-doc)
if(TARGET shardplan-gui)
  list(APPEND CPACK_COMPONENTS_ALL shardplan-gui)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SHARDPLAN-DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SHARDPLAN-DOC_PACKAGE_ARCHITECTURE all)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
endforeach()
set(CPACK_COMPONENT_SHARDPLAN_DESCRIPTION
  "memory, time and cost of training jobs before they run\n Predicts what a training, generation or serving job needs on each GPU and host,\n how fast it runs and what would change that.")
set(CPACK_COMPONENT_SHARDPLAN-VALIDATE_DESCRIPTION
  "runs a sharded training step and compares it with its prediction\n The native engine of shardplan, for CUDA and for the host.")
set(CPACK_COMPONENT_SHARDPLAN-GUI_DESCRIPTION
  "memory, time and cost of training jobs, in a window\n The questions of shardplan with sliders, plots and reports.")
set(CPACK_COMPONENT_SHARDPLAN-DOC_DESCRIPTION
  "documents and example jobs of shardplan\n Tutorials, how-to, reference, explanation and evidence, as Markdown.")
include(CPack)
