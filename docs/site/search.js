// An option is searched for as it is typed in a command. The search would read the hyphens of
// "--dual-alpha" as "pages without this word"; "+dual +alpha" finds the pages that have both words.
document.addEventListener("input", (event) => {
  const field = event.target;
  if (!field.matches(".md-search__input")) return;
  const query = field.value
    .replace(/(^|\s)-+(?=\w)/g, "$1+")
    .replace(/(^|\s)\+[\w-]+/g, (option) => option.replace(/-+(?=\w)/g, " +"));
  if (query !== field.value) field.value = query;
}, true);
