// An option is searched for as it is typed in a command: the search would read the hyphens of
// "--dual-alpha" as "pages without this word".
document.addEventListener("input", (event) => {
  const field = event.target;
  if (!field.matches(".md-search__input")) return;
  const query = field.value.replace(/(^|\s)-+/g, "$1");
  if (query !== field.value) field.value = query;
}, true);
