/* What scripts say, in the language of the page, by gettext's rules: the English text is the key. `texts` is what
   retrompi.base.translate.of_scripts made; without one everything is said in English. */
"use strict";
function retrompiWordsOf(texts) { // eslint-disable-line no-unused-vars
  return {
    _: (text) => texts[text] || text,
    /* Of a constant: marked where it stands, translated by _() where it is shown. */
    lazy: (text) => text,
    ngettext: (one, many, n) => {
      const forms = texts[one];
      return forms ? forms[Number(texts[""][n < 100 ? n : 100 + (n % 100)])] : n === 1 ? one : many;
    },
    /* A text with names in braces. */
    fill: (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)),
    /* A whole number: a comma between its thousands would be read as a decimal one wherever that is not a point. */
    count: (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "" in texts ? "\u202f" : ","),
  };
}
