// What every test includes besides: GoogleTest and GoogleMock, compiled once.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pch.h"
