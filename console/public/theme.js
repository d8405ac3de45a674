// Sets the theme before the first paint. It is a file of its own because the
// content security policy allows no inline script.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem("cartwheel.theme");
  } catch (e) {
    chosen = null; // storage is switched off: follow the system
  }
  var dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
