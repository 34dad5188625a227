# Looks for cuDNN 9 and its front end, which is headers alone: in the toolkit, in the system, under CUDNN_PATH,
# and in the Python that is found first, where PyTorch brings a cuDNN of its own. Downloads the front end
# where only that is missing. Sets CUDNN_INCLUDE_DIR, CUDNN_LIBRARY, CUDNN_FRONTEND_INCLUDE_DIR, and
# SHARDPLAN_CUDNN_LACKS: what is missing, as the end of a sentence.

set(python_cudnn "")
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  execute_process(COMMAND python3 -c "import nvidia.cudnn as c; print(list(c.__path__)[0])"
    OUTPUT_VARIABLE python_cudnn OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(places ENV CUDNN_PATH ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR} ${python_cudnn})
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${places} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${places} PATH_SUFFIXES lib lib64)

set(front_end ${PROJECT_SOURCE_DIR}/build/cudnn-frontend/include)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${front_end} ${places} PATH_SUFFIXES include)
if(CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY AND NOT CUDNN_FRONTEND_INCLUDE_DIR
   AND SHARDPLAN_FETCH_CUDNN_FRONTEND)
  message(STATUS "Downloading cuDNN's front end (-DSHARDPLAN_FETCH_CUDNN_FRONTEND=OFF does not)")
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/install_cudnn_frontend.sh)
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${front_end})
endif()

set(SHARDPLAN_CUDNN_LACKS "")
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  set(SHARDPLAN_CUDNN_LACKS " (cuDNN 9 was not found; CUDNN_PATH can say where it is)")
elseif(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  set(SHARDPLAN_CUDNN_LACKS " (its front end is missing, and tools/install_cudnn_frontend.sh gets it)")
endif()
