//! Errors that end a node early, with their exit codes.

use std::fmt;

/// The reason why a node ends early.
#[derive(Debug)]
pub enum Error {
    /// A key of the specification is missing or unknown, or its value is not allowed (exit 2).
    BadSpec { key: String, found: String, allowed: String },
    /// The specification requires a capability that the cell lacks (exit 3).
    Unsupported(String),
    /// The middleware has failed (exit 4).
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

/// `?` converts any library's error to a failed middleware.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        failed(error)
    }
}

/// Returns a failed middleware with a reason that implements Display, as in `.map_err(failed)?`.
pub fn failed(reason: impl fmt::Display) -> Error {
    Error::MiddlewareFailed(reason.to_string())
}

/// Formats an error with its causes. Omits causes that the error's own text contains.
pub fn causes(error: &dyn std::error::Error) -> impl fmt::Display + '_ {
    Causes(error)
}

struct Causes<'e>(&'e dyn std::error::Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let reason = cause.to_string();
            if !text.contains(&reason) {
                text = format!("{text}: {reason}");
            }
            next = cause.source();
        }
        f.write_str(&text)
    }
}

/// The middleware did not send this message, or the call failed (C-36). The run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFailed;

/// `?` converts any library's error to SendFailed.
impl<E: std::error::Error> From<E> for SendFailed {
    fn from(_: E) -> Self {
        SendFailed
    }
}
