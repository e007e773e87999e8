//! What ends a node early, by exit code.

use std::fmt;

/// Why a node cannot do its part.
#[derive(Debug)]
pub enum Error {
    /// A key of the specification is missing, unknown or out of its range (exit 2).
    BadSpec { key: String, found: String, allowed: String },
    /// The cell does not have what the specification asks for (exit 3).
    Unsupported(String),
    /// The middleware cannot do its part now (exit 4).
    MiddlewareFailed(String),
}

impl Error {
    pub fn bad_spec(key: &str, found: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Error::BadSpec { key: key.into(), found: found.to_string(), allowed: allowed.to_string() }
    }

    pub(crate) fn code(&self) -> i32 {
        match self {
            Error::BadSpec { .. } => 2,
            Error::Unsupported(_) => 3,
            Error::MiddlewareFailed(_) => 4,
        }
    }

    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Error::BadSpec { key, .. } => Some(key),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::BadSpec { key, found, allowed } => {
                write!(f, "spec: {key}: found {found}; allowed: {allowed}")
            }
            Error::Unsupported(reason) | Error::MiddlewareFailed(reason) => f.write_str(reason),
        }
    }
}

/// `?` makes any library's error a failed middleware.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        failed(error)
    }
}

/// A failed middleware from anything that can be said, as in `.map_err(failed)?`.
pub fn failed(reason: impl fmt::Display) -> Error {
    Error::MiddlewareFailed(reason.to_string())
}

/// An error with what caused it, as far as it does not say that itself.
pub fn causes(error: &dyn std::error::Error) -> impl fmt::Display + '_ {
    Causes(error)
}

struct Causes<'e>(&'e dyn std::error::Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut told = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let reason = cause.to_string();
            if !told.contains(&reason) {
                told = format!("{told}: {reason}");
            }
            next = cause.source();
        }
        f.write_str(&told)
    }
}

/// The middleware did not take this message, or the call failed (C-36); the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFailed;

/// `?` makes any library's error a message that was not taken.
impl<E: std::error::Error> From<E> for SendFailed {
    fn from(_: E) -> Self {
        SendFailed
    }
}
