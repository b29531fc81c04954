//! Services that the server offers its plugins, which the core does not know.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The services of a server, by their types; cheap to clone.
#[derive(Clone, Default)]
pub struct Services(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

/// The error of a plugin that needs a service which the server does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has no {0}")]
pub struct MissingService(&'static str);

impl Services {
    /// Adds a service. It replaces one of the same type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, service: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(service));
        self
    }

    /// Returns the service of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<&T, MissingService> {
        let found = self.0.get(&TypeId::of::<T>());
        let found = found.and_then(|service| service.downcast_ref());
        found.ok_or(MissingService(type_name::<T>()))
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Services({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn services_are_found_by_their_types() {
        let services = Services::default().with(1_u8).with("two");
        assert_eq!(services.get::<u8>(), Ok(&1));
        assert_eq!(services.get::<&str>(), Ok(&"two"));
        let missing = services.get::<u16>().unwrap_err();
        assert_eq!(missing.to_string(), "the server has no u16");
    }
}
