//! The pages of the plugin, and their helpers.

use std::collections::HashMap;

use portunus_core::Handle;
use rand::Rng;

use crate::page::{Page, Role};
use crate::status::PageId;

/// All pages. A page that helps another is among the helpers of that one.
#[derive(Default)]
pub(super) struct Pages {
    pages: HashMap<PageId, Page>,
    /// Pages by the numbers that helpers name them by.
    masters: HashMap<u32, PageId>,
    /// The helpers of pages that have some.
    helpers: HashMap<PageId, Vec<PageId>>,
}

impl Pages {
    pub(super) fn attach(&mut self, id: PageId, handle: Handle) {
        let master_id = loop {
            let number = rand::rng().random_range(1..=u32::MAX);
            if !self.masters.contains_key(&number) {
                break number;
            }
        };
        self.masters.insert(master_id, id);
        let unique_id = uuid::Uuid::new_v4().to_string();
        let page = Page::new(handle, unique_id, master_id);
        self.pages.insert(id, page);
    }

    pub(super) fn remove(&mut self, id: PageId) {
        if let Some(page) = self.pages.remove(&id) {
            self.masters.remove(&page.master_id);
            self.end_help(id, page.role);
        }
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

    /// Returns the page that helpers name by `number`.
    pub(super) fn master(&self, number: u32) -> Option<PageId> {
        self.masters.get(&number).copied()
    }

    /// Returns the helpers of a page, oldest first.
    pub(super) fn helpers(&self, master: PageId) -> Vec<PageId> {
        let mut helpers = self.helpers.get(&master).cloned().unwrap_or_default();
        helpers.sort_unstable();
        helpers
    }
}
