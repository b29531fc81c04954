//! The pages of a phone, and their helpers.

use std::collections::HashMap;

use crate::page::{Page, Role};
use crate::status::PageId;

/// All pages. A page that helps another is among the helpers of that one.
#[derive(Default)]
pub(super) struct Pages {
    pages: HashMap<PageId, Page>,
    /// The helpers of pages that have some.
    helpers: HashMap<PageId, Vec<PageId>>,
}

impl Pages {
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(super) fn insert(&mut self, id: PageId, page: Page) {
        let role = page.role;
        self.pages.insert(id, page);
        self.begin_help(id, role);
    }

    pub(super) fn remove(&mut self, id: PageId) -> Option<Page> {
        let page = self.pages.remove(&id)?;
        self.end_help(id, page.role);
        Some(page)
    }

    pub(super) fn get(&self, id: PageId) -> Option<&Page> {
        self.pages.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: PageId) -> Option<&mut Page> {
        self.pages.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PageId, &Page)> {
        self.pages.iter().map(|(id, page)| (*id, page))
    }

    /// Makes a page a helper, or a master again.
    pub(super) fn set_role(&mut self, id: PageId, role: Role) {
        let Some(page) = self.pages.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut page.role, role);
        self.end_help(id, before);
        self.begin_help(id, role);
    }

    fn begin_help(&mut self, id: PageId, role: Role) {
        if let Role::Helper(master) = role {
            self.helpers.entry(master).or_default().push(id);
        }
    }

    fn end_help(&mut self, id: PageId, role: Role) {
        let Role::Helper(master) = role else {
            return;
        };
        if let Some(helpers) = self.helpers.get_mut(&master) {
            helpers.retain(|helper| *helper != id);
            if helpers.is_empty() {
                self.helpers.remove(&master);
            }
        }
    }

    /// Returns the helpers of a page, oldest first.
    pub(super) fn helpers(&self, master: PageId) -> Vec<PageId> {
        let mut helpers = self.helpers.get(&master).cloned().unwrap_or_default();
        helpers.sort_unstable();
        helpers
    }
}
